"""x"""
class PathInfo: pass
def lasso_path(): pass
