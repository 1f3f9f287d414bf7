import numpy as np
def nearest(X, relevance, n_near, n_far, n_threads):
    X=np.asarray(X,dtype=np.float32); X=X-X.mean(0); n=len(X); sq=(X*X).sum(1)
    near=np.full((n,n_near),-1,np.int64); far=np.full((n,n_far),-1,np.int64)
    for i in range(0,n,1000):
        D=sq[i:i+1000,None]+sq-2*X[i:i+1000]@X.T
        D[np.arange(len(D)),np.arange(i,i+len(D))]=np.inf
        if relevance is None: rel=np.ones(D.shape,bool)
        elif relevance.ndim==1: rel=relevance[i:i+1000,None]==relevance
        else: rel=(relevance[i:i+1000].astype(int)@relevance.T.astype(int))>0
        for out,k,m in ((near,n_near,rel),(far,n_far,~rel)):
            if k==0: continue
            E=np.where(m,D,np.inf); kk=min(k,n)
            a=np.argpartition(E,kk-1,axis=1)[:,:kk]; v=np.take_along_axis(E,a,1); o=np.argsort(v,1); a=np.take_along_axis(a,o,1); v=np.take_along_axis(v,o,1)
            out[i:i+1000,:kk]=np.where(np.isfinite(v),a,-1)
    return near,far
